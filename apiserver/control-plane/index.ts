import { noun } from '../noun.ts'
import type { Parts } from '../parts.ts'
import { controlPlaneEndpoints } from './endpoints.ts'

export const controlPlane = noun<Parts>({ name: 'control_plane', endpoints: controlPlaneEndpoints })
