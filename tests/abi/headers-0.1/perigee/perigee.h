/** @file perigee.h Everything public: Kimi language models inside a program of your own. */
#ifndef PERIGEE_PERIGEE_H
#define PERIGEE_PERIGEE_H

#include "perigee/batch.h"
#include "perigee/context.h"
#include "perigee/generate.h"
#include "perigee/model.h"
#include "perigee/options.h"
#include "perigee/queue.h"
#include "perigee/session.h"
#include "perigee/state.h"
#include "perigee/status.h"
#include "perigee/text.h"

#endif
