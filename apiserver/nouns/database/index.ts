import { Database, listDatabases } from '../../../resources/database/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { objectFeed } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import { databaseAdmission } from './admission.ts'
import { type Databases, openDatabases } from './objects.ts'
import { databaseEndpoints, type DatabaseParts } from './endpoints.ts'

export type { Databases } from './objects.ts'

export const database = noun<DatabaseParts, { readonly databases: Databases }>({
  name: 'database',
  kinds: [kind(Database, { access: 'write', target: 'database', admission: databaseAdmission })],
  open: (parts) => ({ databases: openDatabases(parts) }),
  endpoints: databaseEndpoints,
  feeds: ({ databases }) => [objectFeed('database', listDatabases, databases)],
})
