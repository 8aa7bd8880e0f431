/** Settings of every process that uses the object storage. */
import { z } from 'zod'
import { HttpUrl, List } from '../../kit/sys/settings.ts'

export const objectStorageSettings = {
  objectStorageControlUrl: HttpUrl.optional().describe(
    'Object storage of one host: URL where its tenants are managed.',
  ),
  objectStorageTokenFile: z.string().optional().describe('File with the token for that URL.'),
  objectStorageEndpoint: z
    .string()
    .optional()
    .describe('URL that S3 clients connect to; `{zone}` in it is replaced by the name of the zone.'),
  objectStorageAuthorityFile: z
    .string()
    .optional()
    .describe('File (PEM) with the authority that signed the certificate of the endpoint.'),
  objectStorageZones: List.optional().describe('Zones whose object storage it is.'),
  objectStorageObstacle: z.string().optional().describe('Why there is no object storage, for people.'),
  rgwFile: z.string().min(1).optional().describe('File (JSON) that lists the RADOS gateways of Ceph.'),
}

/** Only some of them may be given. */
export type ObjectStorageSettings = Partial<z.output<z.ZodObject<typeof objectStorageSettings>>>
