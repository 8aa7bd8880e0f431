import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { initScriptEndpoints } from './endpoints.ts'

export const initScript = noun<Pick<Parts, 'db' | 'cursors' | 'clock' | 'random'>>({
  name: 'init_script',
  endpoints: initScriptEndpoints,
})
