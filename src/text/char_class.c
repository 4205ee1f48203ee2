#include "text/char_class.h"

#include <string.h>

typedef struct class_range {
    uint32_t first, last;
    uint8_t even, odd; /* by the distance from `first` */
} class_range;

static const class_range ranges[] = {
#define PRG_RANGE(first, last, even, odd) {first, last, even, odd},
#include "text/unicode.def"
#undef PRG_RANGE
};

void prg_char_classes_fill(uint8_t classes[PRG_CODE_POINTS]) {
    memset(classes, 0, PRG_CODE_POINTS);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const class_range *r = &ranges[i];
        if (r->even == r->odd) {
            memset(classes + r->first, r->even, r->last - r->first + 1);
            continue;
        }
        for (uint32_t code = r->first; code <= r->last; code++) {
            classes[code] = (code - r->first) % 2 == 0 ? r->even : r->odd;
        }
    }
}
