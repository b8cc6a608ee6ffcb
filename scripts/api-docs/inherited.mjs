import { Converter } from 'typedoc';

/** TypeDoc plugin: documents a member only where it is declared, unless that type is not part of the reference. */
export function load({ converter }) {
  converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    for (const member of Object.values(project.reflections)) {
      if (member.inheritedFrom?.reflection !== undefined) project.removeReflection(member);
    }
  });
}
