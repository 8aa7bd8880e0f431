/** What the files of the tier share: the product with simulated guests, a customer, and both clients as they are
 *  built. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { buildGo, buildPython } from '../../tools/sdk/main.ts'
import { Customer } from '../e2e/customer.ts'
import { clearAway, Product } from '../e2e/product.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    readonly sdkUrl?: string
    /** Of the customer. */
    readonly sdkToken?: string
  }
}

export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-sdk-'))
  let product: Product | undefined
  try {
    await buildPython()
    await buildGo()
    product = await Product.start({
      data: join(folder, 'data'),
      flags: ['--hypervisor', 'simulated', '--network', 'user', '--fake-payments', '--nodes', 'eu-1a=2,eu-1b=2'],
      warnings: [],
    })
    const running = product
    const customer = await Customer.signUp(() => running, 'sdk@example.com')
    provide('sdkUrl', product.endpoints.api_url)
    provide('sdkToken', customer.token)
    return async () => {
      await clearAway(running, join(folder, 'data'))
      await rm(folder, { recursive: true, force: true })
    }
  } catch (error) {
    await clearAway(product, folder)
    throw error
  }
}
