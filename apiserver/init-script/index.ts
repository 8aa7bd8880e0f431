import { noun } from '../noun.ts'
import type { RowParts } from '../plain/rows.ts'
import { initScriptEndpoints } from './endpoints.ts'

export const initScript = noun<RowParts>({
  name: 'init_script',
  endpoints: initScriptEndpoints,
})
