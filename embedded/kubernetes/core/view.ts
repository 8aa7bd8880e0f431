/** Converts stored objects to one version of the API. */
import { withDefaults } from '../schema/defaults.ts'
import { inVersion, type Definition } from './definition.ts'
import { jsonText, type JsonObject } from './json.ts'
import type { KubeObject } from './object.ts'

/** Views are created once for each definition and stored object; a changed definition is a new object. */
const views = new WeakMap<Definition, WeakMap<KubeObject, KubeObject>>()
const bare = new WeakMap<KubeObject, JsonObject>()

/** The object in the definition's version, with the defaults of the current schema. */
export function versionView(definition: Definition, stored: KubeObject): KubeObject {
  let known = views.get(definition)
  if (!known) views.set(definition, (known = new WeakMap()))
  let view = known.get(stored)
  if (!view) {
    view = inVersion(definition, stored)
    if (definition.isCustom && definition.schema) view = withDefaults(view, definition.schema)
    known.set(stored, view)
  }
  return view
}

/** The text of a list item: items of built-in lists do not repeat their type. */
export function itemText(definition: Definition, view: KubeObject): string {
  if (definition.isCustom) return jsonText(view)
  let item = bare.get(view)
  if (!item) {
    const { apiVersion: _version, kind: _kind, ...rest } = view
    bare.set(view, (item = rest))
  }
  return jsonText(item)
}
