/* A grammar made deterministic as far as it is walked. A state stands for a set of (grammar state, pending returns)
 * whose returns all lie above a common floor; what lies below the floor is a cell of the caller's stack. So what is
 * learned inside a rule, such as the tokens that can go on inside a string, holds wherever the rule is called from. */
#ifndef PRG_GENERATE_AUTOMATON_H
#define PRG_GENERATE_AUTOMATON_H

#include "generate/nfa.h"

#define PRG_AUTOMATON_NONE UINT32_MAX
/* Cell 0 is the bottom of every stack. */
typedef struct prg_cell {
    uint32_t above; /* grammar state to go on with when this return is taken */
    uint32_t parent;
    uint32_t depth;
} prg_cell;

/* What a byte, or a return, leads to. */
typedef struct prg_step {
    uint32_t state;  /* PRG_AUTOMATON_NONE: none inside the floor */
    uint32_t pushed; /* cells that all of the state's configurations put on the floor, as a stack on cell 0 */
    uint32_t need;   /* least depth above the old floor with which the state can be brought to an end */
    uint32_t exits;  /* 1 if the floor's return may be taken now */
} prg_step;

typedef struct prg_automaton_state {
    uint32_t first, count; /* configurations */
    uint32_t mask;         /* of the mask cache, or PRG_AUTOMATON_NONE */
} prg_automaton_state;

typedef struct prg_table { /* open addressing; 0: free */
    uint32_t *slots;
    size_t capacity, count;
} prg_table;

typedef struct prg_automaton {
    prg_allocator *allocator;
    const prg_nfa *nfa;
    prg_automaton_state *states;
    size_t state_count, state_capacity;
    uint32_t *rows; /* [state_count, class_count] numbers of steps; 0: not known, 1: dead */
    size_t row_capacity;
    prg_step *steps; /* 0 and 1 are not used */
    size_t step_count, step_capacity;
    uint64_t *configurations; /* grammar state << 32 | cell */
    size_t configuration_count, configuration_capacity;
    prg_cell *cells;
    size_t cell_count, cell_capacity;
    uint32_t *entries; /* per grammar state the step of returning to it; 0: not known */
    prg_table state_table, cell_table, seen;
    uint64_t *work; /* configurations of the step being made */
    size_t work_count, work_capacity;
    bool no_memory, too_large; /* sticky until prg_automaton_clear() */
} prg_automaton;

perigee_status prg_automaton_init(prg_automaton *automaton, prg_allocator *allocator, const prg_nfa *nfa,
                                  perigee_error **err);
void prg_automaton_free(prg_automaton *automaton);
/* Forget all that was made. */
void prg_automaton_clear(prg_automaton *automaton);
size_t prg_automaton_bytes(const prg_automaton *automaton);

/* Each gives the number of a step, 1 for a dead one; also where memory or the size limit ran out, which is sticky. */
uint32_t prg_automaton_next(prg_automaton *automaton, uint32_t state, uint8_t byte_class);
/* Going on with grammar state `state`, on a new floor. */
uint32_t prg_automaton_enter(prg_automaton *automaton, uint32_t state);
/* The stack `cells` put on top of `floor`. */
uint32_t prg_automaton_stack(prg_automaton *automaton, uint32_t floor, uint32_t cells);
/* The state of a set of configurations that lie above a floor. */
uint32_t prg_automaton_intern(prg_automaton *automaton, const uint64_t *configurations, size_t count);
uint32_t prg_automaton_cell(prg_automaton *automaton, uint32_t above, uint32_t parent);

#endif
