/** What the files of the tier share: the product with simulated guests, a customer, and the provider as it is built. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { buildProvider, PROVIDER_FOLDER } from '../../tools/terraform.ts'
import { Customer } from '../e2e/customer.ts'
import { clearAway, Product } from '../e2e/product.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    readonly terraformUrl?: string
    /** Of the customer. */
    readonly terraformToken?: string
    /** File with which Terraform finds the provider. */
    readonly terraformConfiguration?: string
  }
}

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-terraform-'))
  let product: Product | undefined
  try {
    await buildProvider()
    product = await Product.start({
      data: join(folder, 'data'),
      flags: ['--hypervisor', 'simulated', '--network', 'user', '--fake-payments', '--nodes', 'eu-1a=2,eu-1b=2'],
      warnings: [],
    })
    const running = product
    const customer = await Customer.signUp(() => running, 'terraform@example.com')
    const configuration = join(folder, 'terraform.rc')
    const overrides = `dev_overrides {
 "svccloud/svccloud" = "${PROVIDER_FOLDER}"
 }
 direct {}`
    await writeFile(
      configuration,
      `provider_installation {
${overrides}
}
`,
    )
    provide('terraformUrl', product.endpoints.api_url)
    provide('terraformToken', customer.token)
    provide('terraformConfiguration', configuration)
    return async () => {
      await clearAway(running, join(folder, 'data'))
      await rm(folder, { recursive: true, force: true })
    }
  } catch (error) {
    await clearAway(product, folder)
    throw error
  }
}
