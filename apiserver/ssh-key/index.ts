import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { sshKeyEndpoints } from './endpoints.ts'

export const sshKey = noun<Pick<Parts, 'db' | 'cursors' | 'clock' | 'random'>>({
  name: 'ssh_key',
  endpoints: sshKeyEndpoints,
})
