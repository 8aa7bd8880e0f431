/** Storages are made with their servers and have no endpoints of their own. */
import { Problem } from '../../domain/problem.ts'
import { Storage } from '../../resources/storage/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'

export const storage = noun({
  name: 'storage',
  kinds: [
    kind(Storage, {
      access: 'read',
      admission: {
        create() {
          throw new Problem(501, 'Only boot storages are offered here: they are made with their server.')
        },
      },
    }),
  ],
})
