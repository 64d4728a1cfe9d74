#include <Python.h>

int tiny_device_count(void);
int tiny_add(float *values, float amount, int count);

static PyObject *device_count(PyObject *self, PyObject *ignored) {
  return PyLong_FromLong(tiny_device_count());
}

static PyObject *add(PyObject *self, PyObject *arguments) {
  float value = 0, amount = 0;
  if (!PyArg_ParseTuple(arguments, "ff", &value, &amount)) return NULL;
  if (tiny_add(&value, amount, 1) != 0) {
    PyErr_SetString(PyExc_RuntimeError, "no CUDA device");
    return NULL;
  }
  return PyFloat_FromDouble(value);
}

static PyMethodDef methods[] = {
    {"device_count", device_count, METH_NOARGS, "The number of CUDA devices."},
    {"add", add, METH_VARARGS, "Add two numbers on the device."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", NULL, -1, methods};

PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
