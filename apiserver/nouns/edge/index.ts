import { Edge, listEdges } from '../../../resources/edge/index.ts'
import { edgeChanges } from '../../../changes/edge.ts'
import { kind } from '../../kit/admission/kind.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { objectFeed } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import { edgeEndpoints, type EdgeParts } from './endpoints.ts'
import { type Edges, openEdges } from './objects.ts'

export const edge = noun<EdgeParts, { readonly edges: Edges }>({
  name: 'edge',
  kinds: [kind(Edge, { access: 'write', target: 'edge', admission: admissionOf(edgeChanges) })],
  open: (parts) => ({ edges: openEdges(parts) }),
  endpoints: edgeEndpoints,
  feeds: ({ edges }) => [objectFeed('edge', listEdges, edges.items)],
})
