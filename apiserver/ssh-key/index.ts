import { noun } from '../noun.ts'
import type { RowParts } from '../plain/rows.ts'
import { sshKeyEndpoints } from './endpoints.ts'

export const sshKey = noun<RowParts>({
  name: 'ssh_key',
  endpoints: sshKeyEndpoints,
})
