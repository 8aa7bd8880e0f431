import { LoadBalancer } from '../../../resources/load-balancer/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { asking, differing, makeNetwork, type Row, type Table, WHY } from '../refusals.ts'

const zone = 'eu-1-a'
const BACKEND = { name: 'web', members: [{ name: 'one', address: '10.9.0.10', port: 8080 }] }
const FRONTEND = { name: 'web', port: 80, mode: 'http', backend: 'web' }
const CERTIFICATE = { id: 'c', name: 'c', dnsNames: [], notBefore: '', notAfter: '', fingerprint: '' }
const CONFIGURATION = { frontends: [FRONTEND], backends: [BACKEND] }
const OUTSIDE = { backends: [{ ...BACKEND, members: [{ name: 'a', address: '10.8.0.1', port: 1 }] }] }

const { create, change, remove, edit, request, ofPlatform, creationNeeds } = asking(
  '/load-balancers',
  { zone, name: 'new', networkId: ':back', ...CONFIGURATION },
  { kubectl: { plan: 'starter-1c-1g' } },
)
const configure = (what: string, of: string, spec: object, more: object = {}): Row =>
  change(
    what,
    of,
    { ...spec },
    { method: 'PUT', suffix: '/configuration', rest: { ...CONFIGURATION, ...spec, ...more } },
  )
const withPlan = (what: string, plan: string) => create(what, { plan }, { kubectl: { plan } })
const member = (name: string, address: string) => ({ name, address, port: 1 })
const onlyPlatform = { certificates: [CERTIFICATE], numbered: { generation: 9, digest: '' }, managedBy: 'edge:x' }

export const TABLE: Table = {
  resource: LoadBalancer,
  async arrange(scene) {
    const { make, put, request, patch } = scene
    await makeNetwork('back', '10.9.0.0/24', scene)
    await put(Network, 'fresh', Network.spec.parse({ zone, name: 'fresh' }))
    for (const name of ['out', 'other', 'kept', 'leaving'])
      await make(name, '/load-balancers', { zone, name, network_id: ':back', ...CONFIGURATION }, { isBusy: true })
    await patch(LoadBalancer, 'kept', { spec: { isProtected: true } })
    await request('DELETE', '/load-balancers/:leaving')
  },
  rows: [
    create('before its network', { networkId: 'later' }, { differs: WHY.pending }),
    create('in a network without ranges', { networkId: ':fresh' }, { differs: WHY.pending }),
    create('in no zone', { zone: 'nowhere' }),
    create('in a zone without networks', { zone: 'bare' }),
    create('in a zone without images', { zone: 'imageless' }),
    create('in a closed zone', { zone: 'closed' }),
    withPlan('with a plan that is not there', 'nothing'),
    withPlan('with a plan that is too small', 'tiny'),
    create('with a member outside', OUTSIDE),
    create('with a frontend of no backend', { backends: [] }),
    create('with a backend of no name', { backends: [{ ...BACKEND, name: 'a b' }] }),
    create('with https and no certificate', { frontends: [{ ...FRONTEND, mode: 'https' }] }),
    create('with the name of another', { name: 'out' }),
    create('with a name that nobody can read', { name: 'a\u0007' }),
    create('with labels of no form', { labels: { 'a b': '' } }),
    ...Object.entries(onlyPlatform).map(([field, value]) =>
      create(`with ${field} of its choice`, { [field]: value }, { rest: false }),
    ),
    ...creationNeeds('address', 'credit', 'quota'),
    ...ofPlatform('out'),

    change('change nothing', 'out', {}),
    change('rename as another', 'out', { name: 'other' }),
    change('rename one that is being deleted', 'leaving', { name: 'a' }),
    change('rename, label and protect', 'out', { name: 'renamed', labels: { a: 'b' }, isProtected: true }),
    ...differing(
      'kubectl names the version of the object instead of a generation',
      configure('configure another generation', 'out', {}, { configuration_generation: 9 }),
    ),
    configure('configure a member outside', 'out', OUTSIDE),
    configure('configure one that is being deleted', 'leaving', { frontends: [] }),
    request('add a member to no backend', 'POST', '/:out/backends/none/members', member('b', '10.9.0.9')),
    request('add a member twice', 'POST', '/:out/backends/web/members', member('one', '10.9.0.9')),
    request('add a member outside', 'POST', '/:out/backends/web/members', member('b', '10.8.0.1')),
    request('change a member that is not there', 'PATCH', '/:out/backends/web/members/none', { weight: 1 }),
    request('remove a member that is not there', 'DELETE', '/:out/backends/web/members/none'),
    request('remove a certificate that is not there', 'DELETE', '/:out/certificates/none'),
    edit('give certificates', 'out', { spec: { certificates: [CERTIFICATE] } }),
    edit('give a number', 'out', { spec: { numbered: { generation: 9, digest: '' } } }),
    edit('configure and rename', 'out', { spec: { frontends: [], name: 'another' } }),
    edit('move', 'out', { spec: { zone: 'bare' } }),
    edit('change the plan', 'out', { spec: { plan: 'tiny' } }),
    configure('configure', 'other', { frontends: [] }),
    request('change one that is not there', 'PATCH', '/nothing', { name: 'a' }),

    remove('one that is protected', 'kept'),
    remove('one that is being deleted', 'leaving', { differs: WHY.deletionWaits }),
    remove('', 'other'),
    create(''),
  ],
}
