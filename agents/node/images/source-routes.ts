/** The script by which servers answer at the interface that was asked, for images that get their addresses by DHCP. */
import { join } from 'node:path'

/** The script here; images have it under a path of their own. */
export const SOURCE_ROUTES_FILE = join(import.meta.dirname, 'source-routes')
