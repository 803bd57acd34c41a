"""Server-side printing: objects as the rows of a table, with the columns and cells that Kubernetes gives each kind.

``columns`` are the column definitions of a kind, ``cells`` one object's row, ``conditions`` what the row says beside
it; a scale subresource has columns and cells of its own. ``has_table`` says where there is a table at all.
"""

from shoal.cluster.apiserver.tables.printing import cells, columns, conditions, has_table, scale_cells, scale_columns

__all__ = ["cells", "columns", "conditions", "has_table", "scale_cells", "scale_columns"]
