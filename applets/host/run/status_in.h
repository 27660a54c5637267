/* `toolbox status TARGET…`: what runs in targets, from outside. */
#ifndef RUN_STATUS_IN_H
#define RUN_STATUS_IN_H

int status_in(int argc, char **argv);

#endif
