/** Managed databases for requests. */
import type { DatabaseFacts } from '../../../domain/database/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import {
  Database,
  databaseFactsOf,
  type DatabaseSpec,
  type DatabaseStatus,
  type DatabaseView,
  toDatabaseView,
} from '../../../resources/database/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import type { ObjectParts } from '../../kit/plain/objects.ts'

export type DatabaseObject = KubeObject<DatabaseSpec, DatabaseStatus>
export type Databases = OperatedObjects<DatabaseSpec, DatabaseStatus, DatabaseView, DatabaseFacts>

export const openDatabases = (parts: ObjectParts): Databases =>
  openOperated(parts, {
    name: 'database',
    title: 'database',
    resource: Database,
    surroundingsOf: () => ({}),
    toView: toDatabaseView,
    factsOf: databaseFactsOf,
  })
