import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { kubernetesHostEndpoints } from './endpoints.ts'

export const kubernetesHost = noun<Parts>({ name: 'kubernetes_host', endpoints: kubernetesHostEndpoints })
