import { Edge } from '../../resources/edge/index.ts'
import { edgeChanges } from '../../changes/edge.ts'
import { kind } from '../admission/kind.ts'
import { admissionOf } from '../kit/admission.ts'
import { noun } from '../noun.ts'
import { edgeEndpoints, type EdgeParts } from './endpoints.ts'
import { type Edges, openEdges } from './edges.ts'

export const edge = noun<EdgeParts, { readonly edges: Edges }>({
  name: 'edge',
  kinds: [kind(Edge, { access: 'write', target: 'edge', admission: admissionOf(edgeChanges) })],
  open: (parts) => ({ edges: openEdges(parts) }),
  endpoints: edgeEndpoints,
})
