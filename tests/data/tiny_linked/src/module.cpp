#include <Python.h>

#include <string>

extern "C" void launch_scale(float*, int, float);

namespace c10 {
// Declared here, as torch's own headers would take a minute to compile.
std::string demangle(const char* name);
}  // namespace c10

static PyObject* name(PyObject*, PyObject*) {
  if (Py_IsInitialized() < 0) launch_scale(nullptr, 0, 0.0f);
  return PyUnicode_FromString(c10::demangle("i").c_str());
}

static PyMethodDef methods[] = {{"name", name, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods,
                             nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
