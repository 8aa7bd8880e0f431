import { listPlaygrounds, Playground } from '../../../resources/playground/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { besides, rowFeed, sourceOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { playgroundAdmission } from './admission.ts'
import { playgroundEndpoints, playgroundOf } from './endpoints.ts'

export const playground = noun<Parts>({
  name: 'playground',
  kinds: [kind(Playground, { access: 'write', admission: playgroundAdmission })],
  endpoints: playgroundEndpoints,
  feeds: (parts) => [
    rowFeed('playground', listPlaygrounds, (accountId, id) => playgroundOf(parts, accountId, id), [
      // Its row remains, with its end.
      sourceOf(
        parts.caches.of(Playground),
        besides(({ metadata: { name } }) => [name]),
      ),
    ]),
  ],
})
