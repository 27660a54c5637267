#include "session_pace.h"

#include "io.h"

#define TICK_MAX_MS 20
#define TICK_QUIET_MS 100
#define QUIET_MS 1000
#define THOROUGH_MIN_MS 40
#define THOROUGH_MAX_MS 5000

void pace_start(struct pace *p, struct loop *loop, void (*look)(void *arg), void *arg)
{
    p->look = look;
    p->arg = arg;
    p->timer = loop_timer(loop, 1, look, arg);
}

void pace_stir(struct pace *p)
{
    p->last_activity = now_ms();
    p->tick_ms = 1;
    p->thorough_ms = THOROUGH_MIN_MS;
    p->thorough_at = p->last_activity + THOROUGH_MIN_MS;
}

bool pace_is_thorough(struct pace *p)
{
    long long now = now_ms();
    if (now < p->thorough_at)
        return false;
    p->thorough_at = now + p->thorough_ms;
    p->thorough_ms = p->thorough_ms * 2 < THOROUGH_MAX_MS ? p->thorough_ms * 2 : THOROUGH_MAX_MS;
    return true;
}

int pace_next(struct pace *p)
{
    int tick = p->tick_ms;
    int most = now_ms() - p->last_activity > QUIET_MS ? TICK_QUIET_MS : TICK_MAX_MS;
    p->tick_ms = tick * 2 < most ? tick * 2 : most;
    return tick;
}
