/** Certificates of load balancers: the chain and the sealed key are rows; the spec names the valid ones. */
import { checkCertificate } from '../../../domain/load-balancer/certificate.ts'
import { CERTIFICATES_MAXIMUM } from '../../../domain/load-balancer/rules.ts'
import { badField, conflict, nameTaken, notFound, Problem, unavailable } from '../../../domain/problem.ts'
import { certificateOwner, keepCertificate } from '../../../db/load-balancer/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import {
  type addLoadBalancerCertificate,
  type LoadBalancerSpec,
  type removeLoadBalancerCertificate,
  toCertificateView,
} from '../../../resources/load-balancer/index.ts'
import { rewrite } from './configure.ts'
import type { LoadBalancerParts } from './parts.ts'

/** Answers 201 with the certificate. Throws 400 for a certificate that TLS would not accept, 409 for a name that is
 *  taken, 422 for one too many, and 503 where no sealing key is configured. */
export async function addCertificate(
  parts: LoadBalancerParts,
  call: Call<typeof addLoadBalancerCertificate, Customer>,
): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id: loadBalancerId },
    body: { name, certificate, private_key: privateKey },
    now,
  } = call
  const { loadBalancers, sealing } = parts
  await loadBalancers.read(accountId, loadBalancerId)
  const checked = checkCertificate({ certificate, privateKey }, now)
  if ('detail' in checked) throw badField(checked.field, checked.detail)
  if (!sealing.isAvailable)
    throw unavailable('not_configured', 'Certificates need sealing keys, which this deployment does not have.')
  const id = newUuid(parts.random)
  const owner = { accountId, loadBalancerId }
  const sealedKey = sealing.seal(checked.privateKey, certificateOwner(owner, id))
  const entry = {
    id,
    name,
    dnsNames: [...checked.dnsNames],
    notBefore: checked.notBefore.toISOString(),
    notAfter: checked.notAfter.toISOString(),
    fingerprint: checked.fingerprint,
  }
  const add = ({ certificates }: LoadBalancerSpec) => {
    const other = certificates.find((one) => one.name === name)
    if (other !== undefined)
      throw nameTaken('The load balancer has a certificate of this name.', {
        type: 'load_balancer_certificate',
        id: other.id,
      })
    if (certificates.length >= CERTIFICATES_MAXIMUM)
      throw new Problem(422, `A load balancer has at most ${CERTIFICATES_MAXIMUM} certificates.`)
    return { certificates: [...certificates, entry] }
  }
  await rewrite(parts, call, add, {
    isHarmless: true,
    // The controller deletes rows that no spec names.
    claim: (tx) => keepCertificate(tx, owner, { id, certificate: checked.certificate, sealedKey }, now),
  })
  return { status: 201, body: { certificate: toCertificateView(entry) } }
}

/** Answers 204. Throws 404 for an unknown certificate, and 409 for one that a frontend uses. */
export async function removeCertificate(
  parts: LoadBalancerParts,
  call: Call<typeof removeLoadBalancerCertificate, Customer>,
): Promise<Answer> {
  const { id: loadBalancerId, certificate_id: id } = call.params
  const remove = ({ certificates, frontends }: LoadBalancerSpec) => {
    if (!certificates.some((one) => one.id === id)) throw notFound('certificate')
    const user = frontends.find(({ certificateIds }) => certificateIds.includes(id))
    if (user !== undefined)
      throw conflict('in_use', `The frontend ${user.name} uses the certificate: give it another one first.`, {
        resource: { type: 'load_balancer', id: loadBalancerId },
      })
    return { certificates: certificates.filter((one) => one.id !== id) }
  }
  await rewrite(parts, call, remove, { id: loadBalancerId, isHarmless: true })
  return { status: 204 }
}
