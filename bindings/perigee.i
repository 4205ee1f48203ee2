/* The one interface file of all bindings: the public headers as they are, in the order in which they build on each other.
 * What a language needs beside them stands in typemaps/<language>.i. */
%module perigee
%{
#include <perigee/perigee.h>
#include <perigee/sys/kernel_set.h>
#include <perigee/sys/kernel_watch.h>
%}
%include <stdint.i>
#if defined(SWIGLUA)
%include "typemaps/lua.i"
#elif defined(SWIGGO)
%include "typemaps/go.i"
#endif
%include <perigee/status_codes.h>
%include <perigee/option_keys.h>
%include <perigee/status.h>
%include <perigee/options.h>
%include <perigee/sys/alloc.h>
%include <perigee/sys/kernel.h>
%include <perigee/context.h>
%include <perigee/sys/kernel_set.h>
%include <perigee/sys/kernel_watch.h>
%include <perigee/model.h>
%include <perigee/session.h>
%include <perigee/text.h>
%include <perigee/generate.h>
%include <perigee/batch.h>
%include <perigee/state.h>
%include <perigee/queue.h>
