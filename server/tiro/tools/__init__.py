"""What a model may do in the workspace: tools, their limits, the text of open buffers.

It asks an editor only through the interface it declares. It knows no model and no permission rule.
"""
