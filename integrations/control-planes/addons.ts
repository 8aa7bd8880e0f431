/** Programs that the platform runs beside the control plane of each cluster, and the areas of the platform's API that
 *  the token of each may use. The host that runs them knows everything else about them. */
import type { ClusterScope } from '../../domain/permissions.ts'

export const ADDON_SCOPES = {
  'cloud-controller': ['load_balancers'],
  'csi-driver': ['storages'],
} as const satisfies Readonly<Record<string, readonly ClusterScope[]>>

export type AddonName = keyof typeof ADDON_SCOPES

export const isAddonName = (name: string): name is AddonName => Object.hasOwn(ADDON_SCOPES, name)
