/** Settings of the add-ons of clusters. */
import { z } from 'zod'
import { HttpUrl, logLevel } from '../kit/sys/settings.ts'

const zone = z.string().min(1)
const platform = {
  url: HttpUrl.describe('URL of the platform.'),
  tokenFile: z.string().min(1).describe('File with the token of the cluster for the platform.'),
  clusterId: z.string().min(1).describe('Id of the cluster.'),
}
const csi = {
  csiSocket: z.string().min(1).describe('Path of the socket that the driver serves.'),
  registrationSocket: z.string().min(1).optional().describe('Path of the socket where a kubelet looks for drivers.'),
  logLevel,
}

export const CsiControllerSettings = z.strictObject({
  ...platform,
  zone: zone.describe('Zone of volumes for which nobody names one.'),
  ...csi,
})

export const CsiNodeSettings = z.strictObject({
  serverId: z.string().min(1).describe('Id of the server that the process runs on.'),
  zone: zone.describe('Zone of that server.'),
  disks: z.string().min(1).default('/dev/disk/by-id').describe('Folder with the disks of the machine.'),
  ...csi,
})

export const CloudControllerSettings = z.strictObject({
  ...platform,
  kubeconfig: z
    .string()
    .min(1)
    .meta({ description: 'Kubeconfig file of the cluster.', variables: ['KUBECONFIG'] }),
  logLevel,
})
