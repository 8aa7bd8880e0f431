/** Settings of every process that uses hosts of control planes. */
import { z } from 'zod'
import { HttpUrl, List } from '../../kit/sys/settings.ts'

export const controlPlanesSettings = {
  controlPlanesUrl: HttpUrl.optional().describe('URL of a host of control planes.'),
  controlPlanesTokenFile: z.string().optional().describe('File with the token for that URL.'),
  controlPlanesAuthorityFile: z
    .string()
    .optional()
    .describe("File (PEM) with the authority that signed the host's certificate."),
  controlPlanesRegions: List.optional().describe('Regions that this host serves.'),
  controlPlanesFile: z
    .string()
    .optional()
    .describe('File (JSON) that lists further hosts: url, token, authority and regions of each.'),
  controlPlanesObstacle: z.string().optional().describe('Why there are no control planes, for people.'),
  hostClustersFile: z
    .string()
    .min(1)
    .optional()
    .describe('File (YAML) that says how the platform creates hosts of control planes. Without it, none is created.'),
}

/** Only some of them may be given. */
export type ControlPlanesSettings = Partial<z.output<z.ZodObject<typeof controlPlanesSettings>>>
