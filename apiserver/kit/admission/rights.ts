/** What the API server itself may do with the kinds of the platform: the chart's ClusterRole holds these rules. Only
 *  controllers write a status. */
import { API_GROUP } from '../../../resources/kit/define.ts'
import type { Kind } from './kind.ts'

const READ = ['get', 'list', 'watch']
const WRITE = [...READ, 'create', 'patch', 'update', 'delete']

export const apiServerRights = (kinds: readonly Kind[]) => [
  { apiGroups: [API_GROUP], resources: pluralsOf(kinds, 'read'), verbs: READ },
  { apiGroups: [API_GROUP], resources: pluralsOf(kinds, 'write'), verbs: WRITE },
]

const pluralsOf = (kinds: readonly Kind[], wanted: Kind['access']): readonly string[] =>
  kinds.filter(({ access }) => access === wanted).map(({ resource: { plural } }) => plural)
