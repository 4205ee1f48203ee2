#include "perigee/status.h"

#define PRG_TEXT_OF(x) #x
#define PRG_TEXT(x) PRG_TEXT_OF(x)

const char *perigee_version(void) {
    return PRG_TEXT(PERIGEE_VERSION_MAJOR) "." PRG_TEXT(PERIGEE_VERSION_MINOR) "." PRG_TEXT(PERIGEE_VERSION_PATCH);
}

int32_t perigee_abi_version(void) {
    return PERIGEE_ABI_VERSION;
}

const char *perigee_status_name(perigee_status status) {
    switch (status) {
#define PRG_STATUS(name, number, text)                                                                                 \
    case PERIGEE_##name:                                                                                               \
        return "PERIGEE_" #name;
#include "base/status.def"
#undef PRG_STATUS
    }
    return "PERIGEE_E_?";
}

const char *perigee_status_text(perigee_status status) {
    switch (status) {
#define PRG_STATUS(name, number, text)                                                                                 \
    case PERIGEE_##name:                                                                                               \
        return text;
#include "base/status.def"
#undef PRG_STATUS
    }
    return "unknown status";
}

/* The header's numbers are written from the list; a stale header must not compile. */
#define PRG_STATUS(name, number, text) _Static_assert(PERIGEE_##name == (number), "status_codes.h is stale: " #name);
#include "base/status.def"
#undef PRG_STATUS
