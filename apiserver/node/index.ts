import { Node } from '../../resources/node/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { nodeAdmission } from './admission.ts'
import { nodeEndpoints } from './endpoints.ts'
import type { Nodes } from './nodes.ts'

export { beginOnNode } from './endpoints.ts'
export { listEvacuees, type Nodes, openNodes, othersOf } from './nodes.ts'

export const node = noun<Parts & { readonly nodes: Nodes }>({
  name: 'node',
  kinds: [kind(Node, { access: 'write', target: 'node', admission: nodeAdmission })],
  endpoints: (parts) => nodeEndpoints(parts, parts.nodes),
})
