/* text_editor: view and edit files, exactly, and undo it. */
#ifndef TEXT_EDITOR_H
#define TEXT_EDITOR_H

#include "applet.h"
#include "tool.h"

extern const struct applet text_editor_applet;
extern const struct rpc_method text_editor_methods[];
extern const struct tool text_editor_tool;

#endif
