/* __libc_single_threaded (glibc 2.32, <sys/single_threaded.h>).

   libstdc++'s headers read it before they count references: true means that no second thread
   exists and that plain arithmetic will do. False is right on every system at any time; all that
   it costs is an atomic addition where a plain one would have done. */

char __libc_single_threaded = 0;
