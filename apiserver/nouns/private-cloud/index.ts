import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { privateCloudEndpoints } from './endpoints.ts'

export const privateCloud = noun<Parts>({ name: 'private_cloud_request', endpoints: privateCloudEndpoints })
