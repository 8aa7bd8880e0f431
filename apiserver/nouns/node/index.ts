import { Node } from '../../../resources/node/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { nodeAdmission } from './admission.ts'
import { nodeEndpoints } from './endpoints.ts'
import { type Nodes, openNodes } from './objects.ts'

export { beginOnNode } from './endpoints.ts'
export { listEvacuees, type Nodes, othersOf, requireRoomElsewhere } from './objects.ts'

export const node = noun<Parts & { readonly nodes: Nodes }, { readonly nodes: Nodes }>({
  name: 'node',
  kinds: [kind(Node, { access: 'write', target: 'node', admission: nodeAdmission })],
  open: (parts) => ({ nodes: openNodes(parts) }),
  endpoints: (parts) => nodeEndpoints(parts, parts.nodes),
})
