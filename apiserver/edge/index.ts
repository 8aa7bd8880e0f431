import { Edge } from '../../resources/edge/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import { edgeAdmission } from './admission.ts'
import { edgeEndpoints, type EdgeParts } from './endpoints.ts'
import { type Edges, openEdges } from './edges.ts'

export const edge = noun<EdgeParts, { readonly edges: Edges }>({
  name: 'edge',
  kinds: [kind(Edge, { access: 'write', target: 'edge', admission: edgeAdmission })],
  open: (parts) => ({ edges: openEdges(parts) }),
  endpoints: edgeEndpoints,
})
