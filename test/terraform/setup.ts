/** What the files of the tier share: the product with simulated guests, a customer, and the provider as it is built. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { buildProvider, PROVIDER_FOLDER } from '../../tools/terraform.ts'
import { programsOfTerraform } from '../../tools/tiers.ts'
import { Customer } from '../e2e/customer.ts'
import { clearAway, Product } from '../e2e/product.ts'
import { addPublicAddresses, playNodes, publishImages } from './simulated.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    readonly terraformUrl?: string
    /** Of the customer. */
    readonly terraformToken?: string
    /** File with which Terraform finds the provider. */
    readonly terraformConfiguration?: string
    /** Whether the programs of control planes are on this machine. */
    readonly hasControlPlanes?: boolean
    /** Whether the engine of object storage is on this machine. */
    readonly hasObjectStorage?: boolean
    /** Paths of the programs that are there, by name. */
    readonly terraformPrograms?: Readonly<Record<string, string>>
  }
}

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-terraform-'))
  let product: Product | undefined
  try {
    await buildProvider()
    const [data, images] = [join(folder, 'data'), join(folder, 'images')]
    await publishImages(images)
    product = await Product.start({
      data,
      flags: ['--hypervisor', 'simulated', '--network', 'user', '--fake-payments', '--nodes', 'eu-1a=2,eu-1b=2'],
      environment: { SVCCLOUD_IMAGE_CACHE: images, SVCCLOUD_SIMULATED_NODES: 'true' },
      warnings: [],
    })
    const running = product
    const { endpoints } = product
    const customer = await Customer.signUp(() => running, 'terraform@example.com')
    await addPublicAddresses(product, 'eu-1a')
    const endNodes = playNodes({ url: endpoints.api_url, token: customer.token, folder })
    const configuration = join(folder, 'terraform.rc')
    const overrides = `dev_overrides {
 "svccloud/svccloud" = "${PROVIDER_FOLDER}"
 "registry.terraform.io/svccloud/svccloud" = "${PROVIDER_FOLDER}"
 }
 direct {}`
    await writeFile(
      configuration,
      `provider_installation {
${overrides}
}
`,
    )
    provide('terraformUrl', endpoints.api_url)
    provide('hasControlPlanes', endpoints.has_control_planes)
    provide('hasObjectStorage', endpoints.object_storage_url !== null)
    provide('terraformToken', customer.token)
    provide('terraformConfiguration', configuration)
    provide('terraformPrograms', await programsOfTerraform())
    return async () => {
      await endNodes()
      await clearAway(running, data)
      await rm(folder, { recursive: true, force: true })
    }
  } catch (error) {
    await clearAway(product, folder)
    throw error
  }
}
