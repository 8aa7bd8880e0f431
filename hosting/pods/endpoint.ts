/** The addresses of a control plane in pods. Pure. */
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Service } from './kinds.ts'
import { PORTS } from './names.ts'
import type { HostSettings } from './settings.ts'

export interface Endpoint {
  /** For clients and nodes. */
  readonly url: string
  readonly tunnel: { readonly host: string; readonly port: number }
  /** For this process. */
  readonly inner: string
  /** Addresses in the certificate. */
  readonly addresses: readonly string[]
}

type ServiceObject = KubeObject<
  NonNullable<(typeof Service)['types']>['spec'],
  NonNullable<(typeof Service)['types']>['status']
>

export const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** Undefined until the host cluster has assigned addresses and ports. */
export function endpointOf({ spec, status }: ServiceObject, wanted: HostSettings['endpoint']): Endpoint | undefined {
  const { clusterIP } = spec
  if (clusterIP === undefined) return undefined
  const inner = `https://${bracketed(clusterIP)}:${PORTS.api}`
  if (wanted.type === 'NodePort') {
    const portOf = (wantedName: string) => spec.ports?.find(({ name }) => name === wantedName)?.nodePort
    const [api, tunnel] = [portOf('api'), portOf('tunnel')]
    if (api === undefined || tunnel === undefined) return undefined
    const { address: host } = wanted
    return { url: `https://${bracketed(host)}:${api}`, tunnel: { host, port: tunnel }, inner, addresses: [host] }
  }
  const addresses = (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => ip ?? hostname ?? [])
  const [host] = addresses
  if (host === undefined) return undefined
  return { url: `https://${bracketed(host)}:${PORTS.api}`, tunnel: { host, port: PORTS.tunnel }, inner, addresses }
}
