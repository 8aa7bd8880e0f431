/** The portal shows what a form holds as a resource: what is served, and that Terraform takes it. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import resources from '../../portal/generated/terraform.json' with { type: 'json' }
import { terraformOf } from '../../portal/nouns/terraform.ts'
import { MANAGED } from '../../resources/index.ts'
import { Workspace } from './workspace.ts'

const REQUIRED = `terraform {
  required_providers {
    svccloud = {
      source = "registry.terraform.io/svccloud/svccloud"
    }
  }
}
`

test('the resources are those that the provider serves', () => {
  const examples = readdirSync(join(import.meta.dirname, '../../examples/terraform'))
  const types = Object.values(resources).map(({ type }) => type.replace('svccloud_', '').replaceAll('_', '-'))
  expect(types.length).toBeGreaterThan(10)
  expect(types.filter((type) => !examples.includes(type))).toEqual([])
})

test('Terraform takes the examples of all creations, and finds nothing to lay out', async () => {
  const blocks = Object.entries(resources).map(([id, resource]) => {
    const route = MANAGED.map(({ routes }) => routes.create).find((create) => create.id === id)
    const { leaves } = resource
    const said = Object.entries(Object(route?.example)).filter(([field]) => !leaves.some((left) => left === field))
    return terraformOf(resource, Object.fromEntries(said))
  })
  const workspace = await Workspace.open([REQUIRED, ...blocks].join('\n').concat('\n'))
  try {
    expect(await workspace.run('fmt', '-check', '-diff')).toBe('')
    const { code, output } = await workspace.attempt('validate')
    expect({ code, output }).toMatchObject({ code: 0 })
  } finally {
    await workspace.close()
  }
})

test('what is shown for a network is created as it says', async () => {
  const body = { zone: 'eu-1a', name: 'shown', labels: { 'a.b/c': 'front' } }
  const workspace = await Workspace.open(`${REQUIRED}\n${terraformOf(resources.create_network, body) ?? ''}\n`)
  try {
    await workspace.apply()
    expect(await workspace.changes()).toEqual([])
  } finally {
    await workspace.close()
  }
})
