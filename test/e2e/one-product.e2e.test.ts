/** What needs a running product with real guests, and nothing in it that others would be disturbed by: one for all. */
import { afterAll, beforeAll, describe } from 'vitest'
import { modelTests } from './model-works.ts'
import { clearAway, newFolder, Product } from './product.ts'
import { readmeTests } from './readme-commands.ts'

let data: string
let product: Product

beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({ data, flags: ['--hypervisor', 'qemu'], warnings: [] })
})
afterAll(() => clearAway(product, data))

describe('the README', () => readmeTests(() => product))
describe('a model', () => modelTests(() => product))
