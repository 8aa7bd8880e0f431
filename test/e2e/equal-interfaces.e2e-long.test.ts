/** kubectl and REST on the embedded Kubernetes API, with simulated guests. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, it } from 'vitest'
import { issueKubeconfig } from '../../embedded/kubernetes/server/credentials.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { isBuilt } from '../../tools/cluster/build.ts'
import { Customer } from './customer.ts'
import { kubectlOf, tryEqualInterfaces } from './equal-interfaces.ts'
import { Product } from './product.ts'

const USERNAME = 'grace@example.com'
const hasKubectl = await isBuilt('kubectl')
let data: string
let product: Product

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'svccloud-interfaces-'))
  product = await Product.start({ data, flags: ['--hypervisor', 'simulated'], warnings: [] })
})
afterAll(async () => {
  await product?.stop()
  await rm(data, { recursive: true, force: true })
})

it.runIf(hasKubectl)(
  'a member uses either interface',
  async () => {
    const { kubeconfig, kubernetes_url: url, ca_certificate: ca } = product.endpoints
    const customer = await Customer.signUp(() => product, 'interfaces@example.com')
    await customer.addSshKey()
    const { server, operation } = await customer.createServer({
      zone: 'eu-1a',
      hostname: 'by-rest',
      plan: 'tiny',
      template: 'tiny-linux',
    })
    await customer.finished(operation.id)
    const namespace =
      (await product.kubernetes('/apis/svccloud.dev/v1alpha1/servers')).items[0]?.metadata.namespace ?? ''

    const file = join(data, 'grace.kubeconfig')
    await issueKubeconfig({
      folder: join(data, 'kubernetes'),
      url,
      authority: await readFile(ca ?? '', 'utf8'),
      user: USERNAME,
      groups: [],
      file,
      random: systemRandom,
    })
    await kubectlOf(kubeconfig, namespace)(
      'create',
      'rolebinding',
      'grace',
      '--clusterrole=svccloud:member',
      `--user=${USERNAME}`,
    )
    await tryEqualInterfaces({ customer, kubectl: kubectlOf(file, namespace), username: USERNAME }, server)
  },
  300_000,
)
