/** Programs that the platform runs beside the control plane of each cluster, and which areas of the platform's API the
 *  token of each is for. What else there is to know of them knows who runs them. */
import type { ClusterScope } from '../../domain/permissions.ts'

export const ADDON_SCOPES = {
  'cloud-controller': ['load_balancers'],
  'csi-driver': ['storages'],
} as const satisfies Readonly<Record<string, readonly ClusterScope[]>>

export type AddonName = keyof typeof ADDON_SCOPES

export const isAddonName = (name: string): name is AddonName => Object.hasOwn(ADDON_SCOPES, name)
