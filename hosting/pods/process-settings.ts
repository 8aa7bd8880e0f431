/** Settings of the process that hosts control planes as pods. A separate file describes the host cluster (settings.ts).
 */
import { z } from 'zod'
import { logLevel, Port } from '../../kit/sys/settings.ts'

export const ControlPlanesHostSettings = z.strictObject({
  data: z.string().min(1).describe('Folder for records, keys and snapshots. No other process uses it.'),
  hostClusterFile: z.string().min(1).describe('File (JSON or YAML) with the images and sizes of control planes.'),
  kubeconfig: z
    .string()
    .optional()
    .describe("Kubeconfig file of the host cluster. Without it, the pod's service account is used."),
  host: z.string().default('0.0.0.0').describe('Address that it listens on for the platform, with a certificate.'),
  controlPort: Port.describe('Port for the platform.'),
  tokenFile: z.string().min(1).describe('File with the bearer token that the platform presents.'),
  certificateFile: z.string().optional().describe('File (PEM) with its certificate.'),
  keyFile: z.string().optional().describe('File (PEM) with its key. Without both, it listens on the loopback only.'),
  logLevel,
})
