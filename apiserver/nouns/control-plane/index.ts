import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { controlPlaneEndpoints } from './endpoints.ts'

export const controlPlane = noun<Parts>({ name: 'control_plane', endpoints: controlPlaneEndpoints })
