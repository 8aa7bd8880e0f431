import { noun } from '../../kit/noun.ts'
import type { RowParts } from '../../kit/plain/rows.ts'
import { initScriptEndpoints } from './endpoints.ts'

export const initScript = noun<RowParts>({
  name: 'init_script',
  endpoints: initScriptEndpoints,
})
