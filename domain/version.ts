/** The version of the product: in its documents, its MCP endpoint and its command-line client. The same as in
 *  package.json. */
export const VERSION = '0.1.0'
