import { FloatingIp } from '../../resources/floating-ip/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import { floatingIpAdmission } from './admission.ts'
import { floatingIpEndpoints, type FloatingIpParts } from './endpoints.ts'
import { type FloatingIps, openFloatingIps } from './floating-ips.ts'

export const floatingIp = noun<FloatingIpParts, { readonly floatingIps: FloatingIps }>({
  name: 'floating_ip',
  kinds: [kind(FloatingIp, { access: 'write', target: 'floating_ip', admission: floatingIpAdmission })],
  open: (parts) => ({ floatingIps: openFloatingIps(parts) }),
  endpoints: floatingIpEndpoints,
})
