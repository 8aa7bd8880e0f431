/** The script that lets servers answer on the interface that a request came in on, for images that get their addresses
 *  by DHCP. */
import { join } from 'node:path'

/** The script in this project; each image has its own path for it. */
export const SOURCE_ROUTES_FILE = join(import.meta.dirname, 'source-routes')
