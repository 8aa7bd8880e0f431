import { noun } from '../../kit/noun.ts'
import type { RowParts } from '../../kit/plain/rows.ts'
import { sshKeyEndpoints } from './endpoints.ts'

export const sshKey = noun<RowParts>({
  name: 'ssh_key',
  endpoints: sshKeyEndpoints,
})
